"""All rules: what is done in the place of torch's operations that are not exact by nature.

Each is made of IEEE operations in a fixed order, or of sums that are exact in any order.
"""

# The three files write their rules into the table when they are imported.
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
