package server

import (
	"testing"

	"remit/redisstore/records"
	"remit/server/internal/web"
)

func TestAReportThatCannotBeMadeNowSaysSo(t *testing.T) {
	t.Parallel()
	for err, want := range map[error]web.Problem{
		records.ErrManyReports:   {Status: 429, Code: "rate_limited"},
		records.ErrReportTooLong: {Status: 503, Code: "unavailable"},
	} {
		if p := problemOf(err); p.Status != want.Status || p.Code != want.Code || web.RetryAfter(err, p) < 1 {
			t.Errorf("%v is answered with %+v", err, p)
		}
	}
}
