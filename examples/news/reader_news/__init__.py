"""Stories and comments of a news site, hour by hour, and recommendations for its readers."""
