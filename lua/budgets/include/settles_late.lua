-- How long after a hold or a lease has expired unsettled its session stays open for a late settlement before it closes, in ms.
local settles_late = 20000
