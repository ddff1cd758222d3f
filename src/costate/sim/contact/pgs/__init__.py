"""Hard contact by projected Gauss-Seidel, stored as one dense system or pair by pair."""
