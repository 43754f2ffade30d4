package sdk

import (
	"os"
	"testing"

	"remit/internal/serviceproc"
)

func TestMain(m *testing.M) { os.Exit(serviceproc.Tests{M: m}.Run()) }
