"""A second opinion about partitions: what they are, worked out from wall clocks with the standard library."""
