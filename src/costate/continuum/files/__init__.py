"""Files of meshes and tool paths: LS-DYNA, G-code, tables of rows, VTK."""
