"""The 3D viewer in the browser: robots with sliders, motions to play, worlds that run while they are pushed."""
