package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"

	"remit/client"
)

func TestAModelIsNotToldWhereTheServiceIs(t *testing.T) {
	t.Parallel()
	lookup := &net.OpError{Op: "dial", Err: &net.DNSError{Err: "no such host", Name: "budget.internal", Server: "10.0.0.2:53"}}
	for _, row := range []struct {
		err  error
		want string
	}{
		{fmt.Errorf("%w: %w", client.ErrUnavailable, lookup), "try again later"},
		{fmt.Errorf("%w: %w", client.ErrOutcomeUnknown, lookup), "it may have been done"},
		{fmt.Errorf("budget.internal: %w", context.DeadlineExceeded), "try again later"},
		{fmt.Errorf("%w: %w", client.ErrUnavailable, &client.Problem{Status: 503, Code: "unavailable", Detail: "the store is away"}), "the store is away"},
		{errors.New("remit: reason is empty"), "reason is empty"},
	} {
		got := explainToModel(row.err).Error()
		if !strings.Contains(got, row.want) || strings.Contains(got, "internal") || strings.Contains(got, "10.0.0.2") {
			t.Errorf("%v: %s", row.err, got)
		}
	}
}
