"""All rules: replacements for torch operations whose results depend on the machine.

Each is made of IEEE operations in a fixed order, or of sums that are exact in any order.
"""

# Importing these three registers their rules.
from seedgrid.portable import elementwise_rules, layer_rules, reduction_rules
from seedgrid.portable.rule_table import EXACT, RULES, Rule, in_place

__all__ = [
    "EXACT",
    "RULES",
    "Rule",
    "elementwise_rules",
    "in_place",
    "layer_rules",
    "reduction_rules",
]
