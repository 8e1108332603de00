"""The durable engine: definitions, the state machines, and everything that makes a run go on."""
