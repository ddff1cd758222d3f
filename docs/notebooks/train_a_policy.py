# %% [markdown]
# # Train a policy
#
# A cart learns to swing a pole up by gradients through its simulation (SHAC), in half a minute.

# %%
from dataclasses import replace

from costate.report.run_report import run_report
from costate.tasks.cartpole import Cartpole
from costate.train import Run, train
from costate.train.evaluate import evaluate

run = Run.create("out/cartpole", Cartpole, replace(Cartpole.training, iterations=60))
train(run)

# %% [markdown]
# Judge the policy on starts that it has never seen.

# %%
found = evaluate(run, episodes=100)
print(f"return {found['return']:.0f}")

# %% [markdown]
# The report of a run has learning curves and replays, with failures first.

# %%
run_report(run, episodes=2)
