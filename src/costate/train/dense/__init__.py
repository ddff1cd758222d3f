"""Dense networks as machine code: fitting a perceptron to targets, all of it in one compiled function."""
