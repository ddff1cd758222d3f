"""Reports: one HTML file with plots, tables and an interactive 3D replay, that opens without a network.

report = Report("Reaching", "UR5, 200 steps of 20 ms")
report.facts({"final error": "1.3 mm", "steps": 200})
scene = report.replay(world, states, trails=["ur5/tool0"])
report.plot({"shoulder": q[:, 0], "elbow": q[:, 2]}, x=times, title="Joint positions", x_label="time [s]", follow=scene)
report.save("out/reaching.html")
"""

from costate.report.report import Report

__all__ = ["Report"]
