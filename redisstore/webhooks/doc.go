// Package webhooks stores webhooks, the queue of those that have something to do, and their deliveries.
package webhooks
