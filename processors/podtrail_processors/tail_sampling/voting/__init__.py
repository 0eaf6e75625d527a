"""What policies are made of: their base, budgets and rates, what they learn of attempts, reasons in words."""
