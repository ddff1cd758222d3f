"""Drawing: meshes placed on links, poses over time, and pictures without a screen."""
