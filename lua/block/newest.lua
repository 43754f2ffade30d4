-- Turns the start of a page, '' for the newest member, into an argument of ZREVRANGEBYLEX.
-- Takes before. Sets newest.
local newest = '+'
if before ~= '' then
  newest = '(' .. before
end
