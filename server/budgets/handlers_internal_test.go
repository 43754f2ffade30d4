package budgets

import "testing"

func TestADefaultOfNoValueIsKept(t *testing.T) {
	t.Parallel()
	if d := (SessionDefaults{MaxActions: 5, Lifetime: 1}).filled(); d.MaxValue != 0 || d.MaxActions != 5 {
		t.Errorf("%+v", d)
	}
}
