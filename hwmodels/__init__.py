"""The world: quantities, machines, networks, models, and what one operation costs."""
