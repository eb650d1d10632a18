"""What people ask the demonstration's shop, and what its policy says."""

FAQ: tuple[tuple[str, str, str], ...] = (
    (
        "delivery",
        "Is the express fee refunded when a parcel comes late?",
        "Yes, in full, and it starts by itself.",
    ),
    ("delivery", "How long does standard delivery take?", "Three to five working days."),
    ("delivery", "Do you ship skis by air?", "No, by road only."),
    (
        "delivery",
        "Can I change the pickup point after ordering?",
        "Yes, until the parcel is handed to the carrier.",
    ),
    (
        "delivery",
        "What happens to a parcel nobody collects?",
        "It returns to us after 14 days and is refunded.",
    ),
    ("delivery", "How many delivery attempts are made?", "Two, then the parcel waits at the pickup point."),
    ("delivery", "Do you deliver to Svalbard?", "Yes, in seven to ten working days."),
    ("delivery", "Is there same-day delivery in Oslo?", "Yes, for orders before 11:00."),
    ("delivery", "Who pays customs for Switzerland?", "We do: prices include it."),
    ("delivery", "Can a neighbour take my parcel?", "Yes, if you allow it in your account."),
    ("returns", "How long can I return unused boots?", "60 days."),
    ("returns", "Can I return boots worn outside?", "No, unless they are faulty."),
    ("returns", "Who pays shipping for a faulty zip?", "We do."),
    ("returns", "How fast is a refund?", "Within five working days."),
    ("returns", "Do I need the box for a return?", "No, any sturdy box will do."),
    ("returns", "Can I return a gift without the receipt?", "Yes, for a gift card."),
    ("returns", "Are sale items returnable?", "Yes, within 30 days."),
    ("returns", "Can I exchange a size in a shop?", "Yes, in every shop."),
    ("returns", "Is a used tent returnable?", "No."),
    ("returns", "What if the return parcel is lost?", "We refund it with your proof of posting."),
    ("payment", "Can I use two vouchers on one order?", "No, one per order."),
    ("payment", "Do gift cards expire in Norway?", "No."),
    ("payment", "Is there a student discount?", "Yes, ten per cent with a valid card."),
    ("payment", "Can I pay by invoice?", "Yes, up to 5,000 kroner."),
    ("payment", "Can I save two cards?", "Yes, up to five."),
    ("payment", "When is my card charged?", "When the parcel leaves us."),
    ("payment", "Can I get an invoice as a private customer?", "Yes, in your account under Orders."),
    ("payment", "Do you take American Express?", "No."),
    ("payment", "Is there a fee for instalments?", "Yes, 45 kroner a month."),
    ("payment", "Can I change the currency?", "No, it follows the delivery country."),
    ("products", "Which tyres fit the Rondane trailer?", "10-inch, 145/80."),
    ("products", "Is the repair kit part of the tent?", "Yes, from the 2024 model on."),
    ("products", "What is the longest rental for a roof tent?", "21 days."),
    ("products", "Can the down jacket be machine washed?", "Yes, at 30 degrees with down detergent."),
    ("products", "Is the stove allowed on trains?", "Yes, without gas."),
    ("products", "Does the warranty hold for a second owner?", "Yes, with the receipt."),
    ("products", "How long is the warranty on zips?", "Ten years."),
    ("products", "Are the wool layers free of mulesing?", "Yes, all of them."),
    ("account", "How do I delete my account?", "In your account, under Privacy, in two steps."),
    ("account", "How do I stop the newsletter?", "With the link at its foot."),
)
"""Category, question, right answer."""

WRONG = (
    "I am not sure; please contact our support.",
    "That depends on the product.",
    "Yes, always.",
    "No, never.",
    "Within 14 days.",
    "You can find this in your account under Orders.",
)
"""Answers that sound right and are not."""

OPENERS = (
    "Hi, I ordered last week and have a question.",
    "Hello, my order number is {order}.",
    "Good morning!",
    "I have written to you before about this.",
)
THANKS = ("Thanks! One more thing.", "Great, and another question.", "I see. And then:", "OK.")

NOTES = {
    "correct": ("Matches the policy.", "", "Fine.", "Short and right."),
    "incomplete": ("Does not say whether he must ask for it.", "Leaves out the time limit.", ""),
    "hallucination": ("There is no such rule in the policy.", "The number is made up."),
    "off-topic": ("Answers another question.",),
}

RATIONALES = {
    "good": ("States the rule and what happens next.", "Correct and kind.", "Clear, and complete."),
    "middling": ("Correct, but leaves open what the customer has to do.", "Right rule, vague wording."),
    "bad": ("Contradicts the policy.", "Does not answer the question.", "Sounds sure and is wrong."),
}
