module remit/client

go 1.26

require remit/money v0.0.0

replace remit/money => ../money
