"""Random programs under every fault that we know how to cause, judged from outside: `make chaos`."""
