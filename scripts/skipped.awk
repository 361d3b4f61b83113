# Passes ctest's output through and holds its closing lines back until the reasons of skipped tests, counted from
# `log_file`, are printed. A reason is the line after GoogleTest's "file:line: Skipped", or what follows "SKIP: ".
/% tests passed, [0-9]+ tests? failed out of/ { closing = 1 }
closing { held = held $0 "\n"; next }
{ print; fflush() }

END {
  reasons = 0
  while ((getline line < log_file) > 0) {
    reason = ""
    if (after_marker) reason = line
    else if (line ~ /^SKIP: /) reason = substr(line, 7)
    after_marker = line ~ /: Skipped$/
    if (reason != "") {
      if (!(reason in count)) order[++reasons] = reason
      count[reason]++
    }
  }
  if (reasons > 0) print "\nSkipped:"
  for (i = 1; i <= reasons; ++i) printf "  %4d x %s\n", count[order[i]], order[i]
  printf "%s", held
}
