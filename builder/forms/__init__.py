"""The panel's forms, made from the config models: what a field shows, and how what was typed becomes a value."""
