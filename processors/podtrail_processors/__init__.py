"""What is done with spans on their way: pure state machines that are told the time."""
