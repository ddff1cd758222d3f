"""Networks inside of the step: small networks that add to named quantities, or take their place."""
