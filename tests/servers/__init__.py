"""Other systems, as real servers on loopback: each in a process of its own, started by `with`, steered while it runs."""
