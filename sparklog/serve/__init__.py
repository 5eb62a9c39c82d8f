"""Servers that speak Kafka's protocol in front of a root. They are processes of Java; nothing else of sparklog needs one."""
