"""What everything else speaks of: names, cuts, times, tables, keys, facts. Values and functions of values; nothing here reads or writes."""
