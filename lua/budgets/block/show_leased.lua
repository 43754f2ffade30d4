-- Shows leased value as held: takes it off the value used, and adds it to what is held.
if $lv then
  $v, $h = string.format('%.0f', $v - $lv), string.format('%.0f', $h + $lv)
end
