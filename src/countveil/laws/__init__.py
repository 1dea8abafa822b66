"""What a report says about its count, and a count about its rate."""
