//go:build long

package client_test

func init() { seeds = 520 }
