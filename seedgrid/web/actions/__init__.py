"""What happens on each click, key and load: values in, values out."""
