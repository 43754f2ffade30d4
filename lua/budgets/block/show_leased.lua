-- Shows leased value as held: takes it off the value used, and adds it to what is held.
if $leased then
  $value, $held = string.format('%.0f', $value - $leased), string.format('%.0f', $held + $leased)
end
