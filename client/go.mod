module remit/client

go 1.26

require (
	github.com/goccy/go-json v0.12.0
	remit/money v0.0.0
)

replace remit/money => ../money
