"""Other systems as real servers on loopback: started by `with`, steered while they run, mostly in own processes."""
