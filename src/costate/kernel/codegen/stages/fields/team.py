"""Teams: threads that share the loops over blocks of one sample.

One thread runs the program. Where it comes to a loop over blocks, it writes down the loop and lets the others, which wait in
`helper`, take shares of SHARE blocks until none is left; it takes shares itself, and goes on when all are done. A thread that
the system holds back delays others by one share at most. Which thread does what changes no bit: blocks are independent of each
other, and sums have an order of their own.

Words of a team: the loop, its context, first block, block behind the last, counter (round, number of shares, next share), shares
done, and a flag that sends the helpers home. Whoever takes a share moves the counter on by a compare-and-swap: it fails if the
round is over, and in a round that is not over the other words do not change.
"""

from __future__ import annotations

SHARE = 32
"""Blocks of a share. Shares begin at multiples of it."""
TEAM_WORDS = 16
HOME_WORD = 8
"""Place of the flag that sends the helpers home."""
PATIENCE = 2000
"""Looks at the counter before a waiting thread lets others run."""

_SHARE = """define internal void @share(ptr %fn, ptr %ctx, i64 %begin, i64 %end, ptr %ws) #0 {
entry:
  %pt = getelementptr i64, ptr %ws, i64 -1
  %team = load ptr, ptr %pt
  %alone = icmp eq ptr %team, null
  %low = udiv i64 %begin, @SHARE@
  %above = add i64 %end, @MORE@
  %high = udiv i64 %above, @SHARE@
  %n = sub i64 %high, %low
  %few = icmp slt i64 %n, 2
  %simple = or i1 %alone, %few
  br i1 %simple, label %here, label %shared
here:
  call void %fn(ptr %ctx, i64 %begin, i64 %end, ptr %ws)
  ret void
shared:
  %p1 = getelementptr i64, ptr %team, i64 1
  %p2 = getelementptr i64, ptr %team, i64 2
  %p3 = getelementptr i64, ptr %team, i64 3
  %p4 = getelementptr i64, ptr %team, i64 4
  %p5 = getelementptr i64, ptr %team, i64 5
  store ptr %fn, ptr %team
  store ptr %ctx, ptr %p1
  store i64 %begin, ptr %p2
  store i64 %end, ptr %p3
  store atomic i64 0, ptr %p5 monotonic, align 8
  %old = load atomic i64, ptr %p4 monotonic, align 8
  %round = lshr i64 %old, 40
  %next = add i64 %round, 1
  %top = shl i64 %next, 40
  %middle = shl i64 %n, 20
  %new = or i64 %top, %middle
  store atomic i64 %new, ptr %p4 release, align 8
  br label %work
work:
  %took = call i1 @take(ptr %team, ptr %ws)
  br i1 %took, label %work, label %wait
wait:
  %k = phi i64 [0, %work], [%k1, %again]
  %done = load atomic i64, ptr %p5 acquire, align 8
  %ready = icmp eq i64 %done, %n
  br i1 %ready, label %quit, label %patient
patient:
  %k1 = add i64 %k, 1
  %long = icmp sgt i64 %k1, @PATIENCE@
  br i1 %long, label %rest, label %again
rest:
  %ignored = call i32 @sched_yield()
  br label %again
again:
  br label %wait
quit:
  ret void
}
"""
_TAKE = """define internal i1 @take(ptr %team, ptr %ws) #0 {
entry:
  %p1 = getelementptr i64, ptr %team, i64 1
  %p2 = getelementptr i64, ptr %team, i64 2
  %p3 = getelementptr i64, ptr %team, i64 3
  %p4 = getelementptr i64, ptr %team, i64 4
  %p5 = getelementptr i64, ptr %team, i64 5
  %counter = load atomic i64, ptr %p4 acquire, align 8
  %index = and i64 %counter, 1048575
  %shifted = lshr i64 %counter, 20
  %n = and i64 %shifted, 1048575
  %some = icmp slt i64 %index, %n
  br i1 %some, label %try, label %none
try:
  %fn = load ptr, ptr %team
  %ctx = load ptr, ptr %p1
  %begin = load i64, ptr %p2
  %end = load i64, ptr %p3
  %more = add i64 %counter, 1
  %swap = cmpxchg ptr %p4, i64 %counter, i64 %more acq_rel acquire
  %won = extractvalue { i64, i1 } %swap, 1
  br i1 %won, label %run, label %lost
run:
  %low = udiv i64 %begin, @SHARE@
  %share = add i64 %low, %index
  %first = mul i64 %share, @SHARE@
  %last = add i64 %first, @SHARE@
  %early = icmp slt i64 %first, %begin
  %from = select i1 %early, i64 %begin, i64 %first
  %late = icmp sgt i64 %last, %end
  %to = select i1 %late, i64 %end, i64 %last
  call void %fn(ptr %ctx, i64 %from, i64 %to, ptr %ws)
  %before = atomicrmw add ptr %p5, i64 1 acq_rel
  ret i1 true
lost:
  ret i1 true
none:
  ret i1 false
}
"""
_HELPER = """define void @helper(ptr %team, ptr %ws) #0 {
entry:
  %ph = getelementptr i64, ptr %team, i64 @HOME@
  br label %look
look:
  %k = phi i64 [0, %entry], [0, %work], [%k1, %again]
  %home = load atomic i64, ptr %ph acquire, align 8
  %over = icmp ne i64 %home, 0
  br i1 %over, label %quit, label %work
work:
  %took = call i1 @take(ptr %team, ptr %ws)
  br i1 %took, label %look, label %idle
idle:
  %k1 = add i64 %k, 1
  %long = icmp sgt i64 %k1, @PATIENCE@
  br i1 %long, label %rest, label %again
rest:
  %ignored = call i32 @sched_yield()
  br label %again
again:
  br label %look
quit:
  ret void
}
"""


def team_functions() -> dict[str, str]:
    """Return the functions of a team, by name."""
    numbers = {"@SHARE@": SHARE, "@MORE@": SHARE - 1, "@PATIENCE@": PATIENCE, "@HOME@": HOME_WORD}
    found = {"share": _SHARE, "take": _TAKE, "helper": _HELPER}
    for mark, number in numbers.items():
        found = {name: text.replace(mark, str(number)) for name, text in found.items()}
    return found
