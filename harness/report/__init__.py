"""The report: results/report/index.html, one page that needs nothing but itself."""
