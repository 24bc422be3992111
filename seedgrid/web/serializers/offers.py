"""What the settings offer with a model, as the page's form is told of it."""

from typing import Any

from seedgrid.core.fields import AUTO, ON_PAGE
from seedgrid.web.state.model_options import Offer, offered_words, shapes_of
from seedgrid.web.texts import say, word

Json = dict[str, Any]


def offered(offer: Offer, language: str) -> Json:
    """Return the lists as [label, value] pairs, what an open field gets, words and shapes."""
    lists: Json = {}
    for row in ON_PAGE:
        if row.widget != "choice":
            continue
        names = offer.choices[row.name]
        pairs = [[word(f"{row.name}_choice_{name}", language) or name, name] for name in names]
        if row.has_auto:
            auto = say("choice_auto", language)
            pairs = [[f"{auto} ({row.text(offer.answers)})", AUTO], *pairs]
        lists[row.name] = pairs
    return {
        "lists": lists,
        "chosen": dict(offer.chosen),
        "open": {row.name: row.text(offer.answers) for row in ON_PAGE if row.widget == "number"},
        "hints": offered_words(offer.card, language),
        "shapes": shapes_of(offer.card),
    }
