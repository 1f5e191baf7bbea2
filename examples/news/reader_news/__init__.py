"""What readers of a news site write, hour by hour, and what to recommend to them."""
