"""Reports for people: HTML and Markdown, one set of components, templates and one stylesheet.

`components` are the parts as data, `rendering` draws them with Jinja2 from `templates/`, and `static/evenhand.css`
is the look that report files and the service's pages share. One module per report: `comparison`, `ab`, `run`,
`calibration`, `scores`, `plan`.
"""
