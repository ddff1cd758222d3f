"""Contact models: the door through which a step solves contact, and the three models that come with it."""
