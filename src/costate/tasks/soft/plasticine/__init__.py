"""PlasticineLab's ten tasks in our own form: tools bring plasticine into a wanted shape."""
