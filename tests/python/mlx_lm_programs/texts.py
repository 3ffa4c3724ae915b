"""What the tiny model of make_tiny.py learns."""

SUBJECTS = ["cat", "dog", "fox", "owl", "hen", "cow", "pig", "bee", "ant", "ram", "yak", "elk", "bat", "rat", "emu", "cod", "eel"]
TEXTS = [f"the {subject} number {i} sits on mat {(7 * i + 3) % 10} and sees {SUBJECTS[(i * 5 + 2) % len(SUBJECTS)]} again ." for i, subject in enumerate(SUBJECTS)]
