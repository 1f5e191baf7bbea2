"""Every flight that left New York in 2013: from CSV files to a monthly report."""
