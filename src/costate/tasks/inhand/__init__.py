"""In-hand manipulation by model-predictive control through smoothed contact, judged in MuJoCo."""
