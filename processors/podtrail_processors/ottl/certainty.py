"""Which conditions have an answer on every span, told before any is seen."""

from podtrail_processors.ottl import syntax
from podtrail_processors.ottl.resolve import Resolver

_SAFE = {"IsBool", "IsDouble", "IsEmpty", "IsInt", "IsList", "IsMap", "IsString"}


class Certainty:
    """Finds them. What it does not know counts as what may fail."""

    def __init__(self, resolver: Resolver) -> None:
        self._resolver = resolver

    def never_fails(self, node: syntax.SyntaxNode) -> bool:
        """Say whether a condition, or a value in it, certainly has an answer on every span."""
        match node:
            case syntax.Constant() | syntax.Enum():
                return True
            case syntax.AnyOf() | syntax.AllOf():
                return all(map(self.never_fails, node.operands))
            case syntax.Opposite():
                return self.never_fails(node.operand)
            case syntax.Comparing():
                return self.never_fails(node.left) and self.never_fails(node.right)
            case syntax.Path():
                return self._path_never_fails(node)
            case syntax.FunctionCall():
                safe = node.name in _SAFE or self._resolver.is_root_check(node)
                return safe and not node.keys and all(self.never_fails(argument.value) for argument in node.arguments)
        return False

    def _path_never_fails(self, path: syntax.Path) -> bool:
        field, keys = self._resolver.path(path)
        if not keys:
            return not field.fails
        return len(keys) == 1 and isinstance(keys[0], syntax.Constant) and isinstance(keys[0].value, str)
