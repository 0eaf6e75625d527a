"""What can be wrong with a condition: its text, or what it meets in a span."""


class ConditionError(ValueError):
    """A condition that can't be read, or that asks for something that there is not; says where."""

    def __init__(self, problem: str, text: str, offset: int) -> None:
        """`offset`: where in `text` the problem is."""
        before = text[:offset]
        self.problem = problem
        self.line = before.count("\n") + 1
        """The line within the condition, from 1."""
        self.column = offset - (before.rfind("\n") + 1) + 1
        """The column within the line, from 1."""
        super().__init__(f"{self.line}:{self.column}: {problem}")


class EvaluationError(Exception):
    """A span on which a condition has no answer: a value of a wrong type, a division by zero, an index too far."""
