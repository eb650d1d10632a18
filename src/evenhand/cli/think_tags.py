"""The option that says where thinking ends and the answer begins."""

THINK_TAGS_HELP = "Tags of thinking that is not scored: names or pairs such as '[THINK]...[/THINK]', with commas; none for none."
