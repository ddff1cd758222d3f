"""Reports of runs that learnt by reward."""
