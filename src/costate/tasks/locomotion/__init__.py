"""Robots that learn to walk and run by reward."""
