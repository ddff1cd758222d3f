"""What is drawn, wherever it is drawn: triangle meshes placed on links, poses over time, and pictures without a screen."""
