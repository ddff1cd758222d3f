"""Docstrings are sentences: none begins with a dangling fragment, and those of functions begin with a verb."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.docstrings import Docstring, docstrings

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "costate"

_FRAGMENTS = """
of what where whether how which who whose when why none those such than likewise per as with without or and then by to
at in on from for until between along under within after about not
"""
_VERBS = """
abandon accept accumulate add advance align allocate allow answer append apply approximate ask assemble assign attach
average begin bind blend bound branch break bring build bundle cache call carry cast catch change check choose clamp
clean clear clip close collapse collect colour combine commit compare compile complete compose compute concatenate
connect constrain construct continue contract convert copy count cover create cross cut damp decide declare decode
decompose decrease define delay delete derive describe design detach detect determine differentiate disable discard
dispatch display distribute disturb divide do double draw drive drop dump eliminate embed emit enable encode end enforce enter
erase estimate evaluate exchange excite execute expand explain export express extend extract extrapolate factor fall
fetch fill filter find finish fit fix flatten flip fold follow force forget form format free fuse gather generate get
give go greet group grow guess guide handle hash hide hold identify ignore import include increase index indicate
infer initialise inline insert inspect install instantiate integrate interpolate intersect invert iterate join judge
jump keep kill label launch lay lead learn leave let lift limit line linearise link list load locate lock log look
lower make map mark mask match measure merge minimise mirror move multiply name narrow negate normalise note notice
number observe offer open optimise order override pack pad parse partition pass paste pause perturb pick pin place
plan play plot point pool pose prefer prepare present press print process produce project propagate propose prove
provide prune publish pull push put query quote raise randomise rank read rebuild receive recompute record recover
reduce refine refuse register reject release remember remove rename render reorder repeat replace report request require
reserve reset reshape resolve restore resume return reuse reverse revise rewrite roll rotate round run sample save say
scale scan scatter schedule search seed select send separate serve set shade shape share shift show shrink shut sign
simplify simulate skip sleep slice slide smooth snap solve sort specialise spell split spread square stack standardise
start state stay steer step stop store stream subtract succeed suggest sum supply suppress swap sweep switch take tell
tend test tidy tile time touch trace track train transfer transform translate transmit transpose traverse trim try
tune turn undo unfold unite unpack unwrap update upgrade use validate vary verify view visit wait walk warm warn watch
weigh wire wrap write yield
"""

FRAGMENTS = frozenset(_FRAGMENTS.split())
"""First words that leave a reader asking: of what? where what?"""

VERBS = frozenset(_VERBS.split())
"""What a function can do. A verb that is missing here is welcome."""


def is_fragment(doc: Docstring) -> bool:
    """Tell whether a docstring begins with a dangling word or a bare unit."""
    return doc.first_word.lower() in FRAGMENTS or doc.text.lstrip().startswith("[")


def lacks_verb(doc: Docstring) -> bool:
    """Tell whether a function's docstring begins with something else than a verb in the imperative."""
    return doc.kind == "function" and doc.first_word.lower() not in VERBS


RULES: dict[str, Callable[[Docstring], bool]] = {"fragment": is_fragment, "no verb": lacks_verb}


@pytest.mark.parametrize("rule", RULES)
def test_docstrings_of_the_package_keep_the_rules(rule: str) -> None:
    assert list(_offences(SOURCE, RULES[rule])) == []


def test_docstrings_of_benchmarks_begin_with_no_fragment() -> None:
    assert list(_offences(ROOT / "benchmarks", is_fragment)) == []


def _offences(folder: Path, breaks: Callable[[Docstring], bool]) -> Iterator[str]:
    """Yield place and beginning of every docstring below a folder that breaks a rule."""
    for path in sorted(folder.rglob("*.py")):
        for doc in docstrings(path):
            if breaks(doc):
                yield f"{path.relative_to(ROOT)}:{doc.line}: {doc.text.split('.')[0][:80]}"


@pytest.mark.parametrize(
    ("kind", "text", "broken"),
    [
        ("field", "Of the spring [N/m].", {"fragment"}),
        ("field", "[m].", {"fragment"}),
        ("field", "Stiffness [N/m].", set()),
        ("class", "A contact point between two links.", set()),
        ("class", "What a solver found.", {"fragment"}),
        ("property", "Number of coordinates.", set()),
        ("function", "The inertia of a body.", {"no verb"}),
        ("function", "Whether it is closed.", {"fragment", "no verb"}),
        ("function", "Return the inertia of a body.", set()),
    ],
)
def test_the_rules_find_what_they_are_for(kind: str, text: str, broken: set[str]) -> None:
    assert {rule for rule, breaks in RULES.items() if breaks(Docstring(kind, "x", text, 1))} == broken
